import { describe } from "vitest";
import { crashLoopCases } from "./crash-loop-cases.ts";
import { soakCases } from "../scale/soak-cases.ts";
import { onDeadlySite } from "./deadly-site.ts";

describe("a run that kills its process", () => {
  crashLoopCases((check) => onDeadlySite(check));
  soakCases(() => undefined);
});
