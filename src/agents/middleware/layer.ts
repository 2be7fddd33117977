import type {
  AgentRunContext,
  ChatContext,
  FunctionContext,
  Middleware,
  MiddlewareFunction,
} from "../../kernel/index.ts";

/** What stands at one level: an object with `process`, or a bare function. */
export type Stage<Context> = Middleware<Context> | MiddlewareFunction<Context>;

/**
 * One layer of the onion. It declares the levels it is for by having something there, and is in no other path (F1): nothing is
 * asked of it at run time to find out.
 */
export interface Layer {
  /** In faults and in the log. */
  readonly name?: string;
  /** Around one `agent.run()`. Runs again when the run is replayed. */
  readonly agent?: Stage<AgentRunContext>;
  /** Around each call of the model. */
  readonly chat?: Stage<ChatContext>;
  /** Around each call of a tool. */
  readonly function?: Stage<FunctionContext>;
}
