import type { ErrorKind } from "../base/error-kind.ts";
import type { Failure } from "../base/fault.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { RunStatus } from "../run/run-result.ts";
import type { Usage } from "../messages/usage.ts";

/** The life of an invocation around its turns: the ten of seed 004, and what went wrong at its edges (S4). */
export interface AgentEvents {
  /** The raw input, before extensions may transform it. */
  input: { readonly input: JsonValue; readonly channel?: string };
  /** The prompt is built; its hash, since the text is stored once. */
  before_agent_start: { readonly instructionsHash: string; readonly fromCache: boolean };
  /** The history is loaded and compacted. */
  context: { readonly sessionId: SessionId; readonly leafId: string | null; readonly messages: number };
  agent_end: {
    readonly status: RunStatus;
    readonly output: string;
    readonly turns: number;
    readonly usage: Usage;
    readonly interruptionReason: string | null;
  };
  /** In the commit of `agent_end`, after it: the session's entries are visible (trap O1). */
  save_point: { readonly sessionId: SessionId; readonly leafId: string | null };
  /** No follow-up waits; the session is idle. */
  settled: { readonly sessionId: SessionId };
  session_before_compact: {
    readonly sessionId: SessionId;
    readonly contextTokens: number;
    readonly manual: boolean;
  };
  session_compact: {
    readonly sessionId: SessionId;
    readonly entryId: string;
    readonly tokensBefore: number;
    readonly tokensAfter: number;
  };
  /** A model failed and the next one that may answer is asked. */
  model_fallback: {
    readonly from: { readonly provider: string; readonly modelId: string };
    readonly to: { readonly provider: string; readonly modelId: string };
    readonly kind: ErrorKind;
    readonly message: string;
  };
  retry_start: {
    readonly attempt: number;
    readonly maxAttempts: number;
    readonly delayMs: number;
    readonly kind: ErrorKind;
    readonly message: string;
  };
  retry_end: { readonly attempt: number; readonly success: boolean };
  memory_recall: { readonly episodes: number; readonly facts: number };
  memory_write: { readonly kind: "block" | "episode" | "fact" };
  /** A hook or extension threw; the run went on. */
  hook_error: { readonly hook: string; readonly failure: Failure };
  extension_error: { readonly extension: string; readonly event: string; readonly failure: Failure };
}
