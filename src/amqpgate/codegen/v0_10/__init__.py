"""AMQP 0-10, whose grammar has little in common with that of the versions before it.

Types have codes, domains belong to a class, and all that is sent is a structure with packing flags: controls,
commands and the parts of a header. No field must be there.

What is where
    ``grammar``        what the specification says, as attrs
    ``loader``         XML to grammar
    ``pieces``         how a field of each type is declared, read and written
    ``render``         grammar to generated modules, with ``render_structs``
    ``golden``         bytes of each structure, worked out independently of ``render``
    ``render_tests``   grammar to a generated test module

Neighbours
    ``codegen`` runs it, and has ``names`` and the snippets that all versions share.
"""
