export { query, signal, update, type UpdateSchemas } from "../assembly/workflow-messages.ts";
export {
  workflow,
  type RunWorkflowOptions,
  type Workflow,
  type WorkflowOptions,
} from "../assembly/workflow.ts";
export { FatalError } from "../kernel/index.ts";
export type { WorkflowToolOptions } from "../assembly/workflow-tool.ts";
export type {
  CallAgentOptions,
  CompensationOptions,
  DurableHandle,
  Duration,
  HandledUpdate,
  HandleUpdateOptions,
  HostedWorkflow,
  Query,
  RunTarget,
  MapOptions,
  OnCallerEnd,
  SendOptions,
  Serializable,
  SettledItem,
  Signal,
  SignalOptions,
  StartedRun,
  StartedWorkflow,
  StartOptions,
  StartRunOptions,
  StepOptions,
  StepRetry,
  Update,
  UpdateOptions,
  UncancellableOptions,
  WorkflowBranch,
  WorkflowCompensationContext,
  WorkflowBranchOrHandle,
  WorkflowBranchResults,
  WorkflowContext,
  WorkflowResult,
  WorkflowStepContext,
} from "../kernel/index.ts";
export type {} from "./kernel.ts";
