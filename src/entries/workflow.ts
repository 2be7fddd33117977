export {
  workflow,
  type RunWorkflowOptions,
  type Workflow,
  type WorkflowOptions,
} from "../assembly/workflow.ts";
export type { WorkflowToolOptions } from "../assembly/workflow-tool.ts";
export type {
  CallAgentOptions,
  HostedWorkflow,
  Serializable,
  StartOptions,
  WorkflowBranch,
  WorkflowContext,
  WorkflowResult,
  WorkflowStepContext,
  WorkflowStepOptions,
} from "../kernel/index.ts";
export type {} from "./kernel.ts";
