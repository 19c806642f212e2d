"""The questions that records answer: plans over data frames of either engine, and what is made of their rows.

``usage``       messages and bytes per principal and time
``denials``     what is refused most
``replay``      what other policies would have answered; ``judge``, ``requests``: one record, many
``recommend``   the policies that allow what was done; ``templates``, ``names``: keys and names folded;
                ``uses``, ``grants``, ``recommendation``: what was done to rules to documents
``topology``    who sends what to whom; ``graph``: what is read off it; ``picture``, ``picture_page``: how it
                is drawn
``anomalies``   who left their own history
``report``      all of that for a person; ``report_rows``, ``report_parts``: frames to tables and plots;
                ``report_page``, ``report_plots``: those as a page
``preflight``   who would fail on a newer RabbitMQ

A plan is a pure function from data frames to a data frame; it says which columns it gives.
"""
