"""An object store for the bodies of messages: uploads and downloads in threads of their own.

In come pieces of bodies and the names of objects; out go calls on the gateway's thread, when something is
done. The library of the store is imported when the first object is asked for, in one of those threads.

``store``      what a store is, and what it raises
``s3``         one that speaks S3, by boto3
``circuit``    how long a store that fails is left alone
``threads``    where its calls run
``uploads``    a body that goes there as it comes
``downloads``  a body that comes from there, whole and checked, into a file
``stores``     all stores of one gateway

Neighbours: ``session`` calls this room; it knows ``policy`` and ``telemetry`` only.
"""
