import { render } from "preact";
import { followRuns } from "./api/runs-feed.ts";
import { keepPlace } from "./app/keep-place.ts";
import { listenForKeys } from "./app/keys.ts";
import { listenForLinks } from "./app/route.ts";
import { Shell } from "./app/shell.tsx";
import { loadLaterViews } from "./app/view.tsx";

listenForLinks();
listenForKeys();
keepPlace();
followRuns();

const root = document.querySelector("#page");
if (root === null) throw new Error("index.html has no element #page");
render(<Shell />, root);
void loadLaterViews();
