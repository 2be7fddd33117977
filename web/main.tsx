import { render } from "preact";
import { followRuns } from "./api/runs-feed.ts";
import { keepPlace } from "./base/keep-place.ts";
import { listenForKeys } from "./base/keys.ts";
import { listenForLinks } from "./base/route.ts";
import { followAccess } from "./model/top-up-left.ts";
import { Shell } from "./app/shell.tsx";
import { loadLaterViews } from "./app/view.tsx";

listenForLinks();
listenForKeys();
keepPlace();
followRuns();
followAccess();

const root = document.querySelector("#page");
if (root === null) throw new Error("index.html has no element #page");
render(<Shell />, root);
void loadLaterViews();
