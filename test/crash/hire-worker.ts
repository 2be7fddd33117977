import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { doHireWork } from "./hire-work.ts";

await runWorkerDuty(doHireWork);
