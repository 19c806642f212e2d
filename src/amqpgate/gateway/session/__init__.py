"""Established sessions: they answer the upcalls of the data path.

In come frames that the data path does not pass by itself; out go frames for either side, the flows by which
what is alike passes, and the session's end. Nothing here waits but the tear-down.

``registry``           all sessions of a gateway: begun, judged by other policies, forgotten
``session``            one session, from the data path's first upcall to its end
``upcalls``            the data path's upcalls: frame by frame, what each method means (``dispatch``)
``upstream``           the way to the broker: what differs between an own connection and a shared one
``session_policies``   what holds for it, and who looks on (``observer``)
``publish``            publishes that are judged one by one; ``publish_denial`` answers without a close
``client_methods``     what the client asks for; ``deliveries`` what it is sent; ``content`` what is shown
``channel_close``      its channels, and who closes them; ``close_progress`` how far that has come
``connection_close``   who closes the connection; ``session_end`` how far that has come
``consumers``          what a change of policies ends; ``channel_consumers`` what is remembered of them
``operation_limits``   limits of single operations
``version_bridge``     peers of other versions
``flow_control``       deliveries that wait: ``channel_flow`` where, ``delivery_holder`` what passes
``compatibility``      requests as a newer broker takes them; ``channel_windows`` limits, ``requeue`` nacks
``rewriter``           names and messages as a transform policy changes them (``transform``)
``teardown``           what each side hears at the end; ``drain``, ``graceful_close``, ``close_session``
"""
