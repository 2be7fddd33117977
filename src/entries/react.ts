export type {} from "./kernel.ts";
export {
  ReeveProvider,
  useClient,
  useInbox,
  useRun,
  useRuns,
  useSession,
  type HookState,
  type ReeveProviderProps,
  type UseInbox,
  type UseRun,
  type UseRuns,
  type UseSession,
} from "../surfaces/client/react.ts";
