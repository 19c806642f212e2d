"""From ``spec/amqp/*.xml`` to ``amqpgate/wire/generated`` and its tests; run ``python -m amqpgate.codegen``.

What comes in
    The specification files of AMQP 0-8, 0-9 and 0-9-1, and overlays that say where brokers differ. That of
    0-10, whose grammar is another one.

What goes out
    Python text, the same for the same input: one module per version, one test module per version.
    With ``--check`` nothing is written; the exit code is 1 if a committed file is stale.

What is where
    ``model``         what a specification says, as attrs
    ``names``         AMQP names to Python names
    ``loader``        XML to model, overlays merged in
    ``layout``        runs of fields that share one ``struct.Struct``, bytes of bits
    ``render``        model to a generated module, with ``render_methods`` and ``render_properties``
    ``pieces``        snippets that those two share
    ``golden``        bytes of a method worked out from field sizes alone, independent of ``render``
    ``render_tests``  model to a generated test module
    ``v0_10``         the same for AMQP 0-10

Neighbours
    A leaf: nobody imports it. The generated modules depend on ``wire`` only.
"""
