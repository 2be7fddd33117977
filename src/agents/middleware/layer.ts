import type {
  AgentRunContext,
  ChatContext,
  FunctionContext,
  Middleware,
  MiddlewareFunction,
} from "../../kernel/index.ts";

/** Middleware for one level: an object with `process`, or a function. */
export type Stage<Context> = Middleware<Context> | MiddlewareFunction<Context>;

/** A named group of middleware for one or more levels. F1: it takes part only in the levels that it defines. */
export interface Layer {
  /** The name, used in faults and in the log. */
  readonly name?: string;
  /** Runs around `agent.run()`, and again when the run is replayed. */
  readonly agent?: Stage<AgentRunContext>;
  /** Runs around each model call. */
  readonly chat?: Stage<ChatContext>;
  /** Runs around each tool call. */
  readonly function?: Stage<FunctionContext>;
}
