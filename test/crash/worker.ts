import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { doWorkload } from "./do-workload.ts";

await runWorkerDuty(doWorkload);
