"""Tables of open formats: Apache Iceberg (extra ``iceberg``) and Delta Lake (extra ``delta``), without Spark.

In come raw records and the answers of verbs; out go files of Parquet that one version of a table names, for
both engines and for whoever else reads such tables.

``address``    where a table is
``table``      what both formats do for the rest: files that came, files that went, one commit
``iceberg``    by pyiceberg, in a catalogue
``delta``      by deltalake, in a folder or a prefix of an object store
``writing``    records as files of a table: sorted, each once, and few of many
``compacting`` raw records into a table, exactly once
``source``     a table of records for the verbs
``answers``    the answer of a verb as a table
"""
