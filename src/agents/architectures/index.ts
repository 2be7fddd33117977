export type { Architecture } from "../../kernel/index.ts";
export { drawAgent } from "./mermaid.ts";
export { architectureNames, registerArchitecture } from "./registry.ts";

// Architectures of one agent.
export { DeepAgent, deepAgent, type DeepAgentOptions } from "./deep-agent.ts";
export type { DeepAgentLimits } from "./deep-agent-tools.ts";
export { GraphOfThoughts, graphOfThoughts, type GraphOfThoughtsOptions } from "./graph-of-thoughts.ts";
export { PlanAndExecute, planAndExecute, type PlanAndExecuteOptions } from "./plan-and-execute.ts";
export { ReAct, react, type ReActOptions } from "./react.ts";
export type {
  AttemptEvaluator,
  AttemptJudgement,
  AttemptReflector,
  ReflexionAttempt,
} from "./attempt-review.ts";
export { Reflexion, reflexion, type ReflexionOptions } from "./reflexion.ts";
export { ReWoo, rewoo, type ReWooOptions } from "./rewoo.ts";
export { SelfRefine, selfRefine, type SelfRefineOptions } from "./self-refine.ts";
export type { SubAgent } from "./task-tool.ts";
export {
  usualOperations,
  type ScoredThought,
  type ThoughtOperation,
  type ThoughtScore,
  type ThoughtScorer,
  type ThoughtSplitter,
} from "./thought-operations.ts";
export { TreeOfThoughts, treeOfThoughts, type TreeOfThoughtsOptions } from "./tree-of-thoughts.ts";

// Architectures of several agents.
export { ActorCritic, actorCritic, type ActorCriticOptions } from "./actor-critic.ts";
export type { Advisor } from "./advisor.ts";
export { Blackboard, blackboard, type BlackboardOptions } from "./blackboard.ts";
export { Debate, debate, type DebateOptions } from "./debate.ts";
export type { Member, Members } from "../team/team-members.ts";
export { Router, router, type RouterOptions } from "./router.ts";
export { Supervisor, supervisor, type SupervisorOptions } from "./supervisor.ts";
export { Swarm, swarm, type SwarmHandOver, type SwarmOptions, type SwarmPeer } from "./swarm.ts";
