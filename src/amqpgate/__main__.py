"""``python -m amqpgate`` is the same as ``amqpgate``."""

from amqpgate.cli import main

if __name__ == "__main__":
    main(prog_name="amqpgate")
