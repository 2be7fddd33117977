export {
  signal,
  workflow,
  type RunWorkflowOptions,
  type Workflow,
  type WorkflowOptions,
} from "../assembly/workflow.ts";
export { FatalError } from "../kernel/index.ts";
export type { WorkflowToolOptions } from "../assembly/workflow-tool.ts";
export type {
  CallAgentOptions,
  Duration,
  HostedWorkflow,
  Serializable,
  Signal,
  SignalOptions,
  StartOptions,
  StepOptions,
  StepRetry,
  WorkflowBranch,
  WorkflowContext,
  WorkflowResult,
  WorkflowStepContext,
} from "../kernel/index.ts";
export type {} from "./kernel.ts";
