# DO NOT EDIT. Made by `python -m amqpgate.codegen`.
"""One module per version of AMQP; see ``amqpgate.wire`` for the room."""
