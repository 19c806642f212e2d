"""``python -m amqpgate.resources`` prints the definitions; ``--schema`` and ``--table`` tell of settings.

``--into FOLDER`` writes the definitions there, a file each.
"""

import json
import sys
from pathlib import Path

from amqpgate.resources.definitions import manifests
from amqpgate.resources.settings import describe, schema

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--schema"]:
            sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
        case ["--table"]:
            sys.stdout.write(describe())
        case ["--into", folder]:
            for name, text in manifests().items():
                (Path(folder) / name).write_text(text)
        case []:
            sys.stdout.write("---\n".join(manifests().values()))
        case _:
            sys.exit(__doc__)
