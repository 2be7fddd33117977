export type {} from "./kernel.ts";
export {
  Client,
  ClientInbox,
  ClientRuns,
  ClientSchedules,
  ClientSessions,
  createClient,
  type ClientApproval,
  type ClientEventOptions,
  type ClientOnceOptions,
  type ClientOptions,
  type ClientRequestOptions,
  type ClientRun,
  type ClientSchedule,
  type ClientSession,
  type ClientSessionItem,
  type ClientStreamOptions,
  type ClientSubmission,
} from "../surfaces/client/client.ts";
export { RequestError, RouteClient } from "../surfaces/client/route-client.ts";
