"""``python -m amqpgate.inject`` prints the table of keys; with ``--schema``, the JSON Schema."""

import json
import sys

from amqpgate.inject.settings import describe, schema

if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n" if "--schema" in sys.argv[1:] else describe())
