// The graph of a file that the pipeline wrote: what it holds, drawn as the admin page draws it.

import { byId } from "./dom.js";
import { show } from "./drawing.js";

for (const id of ["graph-form", "picture"]) byId(id).hidden = false;
show(JSON.parse(byId("graph-data").textContent));
