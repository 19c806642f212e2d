"""``python -m amqpgate.policy KIND`` prints the JSON Schema of a kind, such as AccessPolicy."""

import json
import sys

from amqpgate.policy.kinds.registry import DOCUMENT_KINDS
from amqpgate.policy.kinds.schema import schema

if __name__ == "__main__":
    kinds = {kind.name: kind for kind in DOCUMENT_KINDS}
    if len(sys.argv) != 2 or sys.argv[1] not in kinds:
        sys.exit(f"usage: python -m amqpgate.policy KIND, which is one of {', '.join(kinds)}")
    sys.stdout.write(json.dumps(schema(kinds[sys.argv[1]]), indent=2) + "\n")
