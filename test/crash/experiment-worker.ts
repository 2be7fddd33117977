import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { doExperimentWork } from "./experiment-work.ts";

await runWorkerDuty(doExperimentWork);
