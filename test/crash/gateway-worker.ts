import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { doGatewayWork } from "./gateway-work.ts";

await runWorkerDuty(doGatewayWork);
