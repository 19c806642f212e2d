"""``amqpgate audit`` for spark-submit, which wants a file: this one.

``python -m amqpgate.pipeline VERB ...`` is the same.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts a script's own folder first, where names such as `usage` would be those of this package.
    here = str(Path(__file__).parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]

    from amqpgate.cli.audit import audit

    audit(prog_name="amqpgate audit")
