"""Python imports this at start where the folder is on PYTHONPATH: so the port map reaches child processes."""

import port_map  # noqa: F401
