"""``python -m tests.unit.chart --update`` writes what is made anew: goldens, README, parts of the schema."""

import sys

from tests.unit.chart import chart_readme, values_schema
from tests.unit.chart.rendering import CASES, GOLDENS, golden, render_case

if sys.argv[1:] != ["--update"]:
    sys.exit(__doc__)
values_schema.FILE.write_text(values_schema.made())
chart_readme.FILE.write_text(chart_readme.made())
texts = {case: golden(render_case(case)) for case in CASES}
for path in GOLDENS.glob("*.yaml"):
    path.unlink()
for case, text in texts.items():
    (GOLDENS / f"{case}.yaml").write_text(text)
