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
  Duration,
  HandledUpdate,
  HandleUpdateOptions,
  HostedWorkflow,
  Query,
  RunTarget,
  Serializable,
  Signal,
  SignalOptions,
  StartOptions,
  StepOptions,
  StepRetry,
  Update,
  UpdateOptions,
  UncancellableOptions,
  WorkflowBranch,
  WorkflowCompensationContext,
  WorkflowContext,
  WorkflowResult,
  WorkflowStepContext,
} from "../kernel/index.ts";
export type {} from "./kernel.ts";
