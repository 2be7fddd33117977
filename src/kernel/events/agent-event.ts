import type { ErrorKind } from "../base/error-kind.ts";
import type { Failure } from "../base/fault.ts";
import type { RunId, SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { CompactionSkip } from "../run/compaction-skip.ts";
import type { RunStatus } from "../run/run-result.ts";
import type { Usage } from "../messages/usage.ts";

/** Events of an invocation around its turns (seed 004), and errors of hooks and extensions (S4). */
export interface AgentEvents {
  /** An input arrived. `input` is the raw input, before extensions may transform it. */
  input: { readonly input: JsonValue; readonly channel?: string };
  /** The system prompt is built. The event contains its hash, because the text is stored once. */
  before_agent_start: { readonly instructionsHash: string; readonly fromCache: boolean };
  /** The history is loaded and compacted. `messages` is the number of messages. */
  context: { readonly sessionId: SessionId; readonly leafId: string | null; readonly messages: number };
  /** An invocation ended. */
  agent_end: {
    readonly status: RunStatus;
    readonly output: string;
    readonly turns: number;
    readonly usage: Usage;
    readonly interruptionReason: string | null;
  };
  /** The session entries of the invocation are visible. Emitted in the commit of `agent_end`, after it (trap O1). */
  save_point: { readonly sessionId: SessionId; readonly leafId: string | null };
  /** The session is idle: no input waits, and no compaction follows. */
  settled: { readonly sessionId: SessionId };
  /** The commit that ends this run submits the run `runId`, which compacts the session. */
  compaction_scheduled: { readonly sessionId: SessionId; readonly runId: RunId };
  /** An extension, a tool or an overflow requested a compaction of the session after the invocation. */
  compaction_requested: { readonly sessionId: SessionId; readonly instructions?: string };
  /** The session was not compacted. `failure` tells why there is no summary. */
  compaction_skipped: {
    readonly sessionId: SessionId;
    readonly reason: CompactionSkip;
    readonly failure?: Failure;
  };
  /** A compaction of the session starts. `manual` tells whether a person requested it. */
  session_before_compact: {
    readonly sessionId: SessionId;
    readonly contextTokens: number;
    readonly manual: boolean;
  };
  /** A compaction of the session ended. `entryId` is the id of the `compaction` entry. */
  session_compact: {
    readonly sessionId: SessionId;
    readonly entryId: string;
    readonly tokensBefore: number;
    readonly tokensAfter: number;
  };
  /** A model failed, and the request goes to the next candidate model. */
  model_fallback: {
    readonly from: { readonly provider: string; readonly modelId: string };
    readonly to: { readonly provider: string; readonly modelId: string };
    readonly kind: ErrorKind;
    readonly message: string;
  };
  /** A failed call is repeated after `delayMs`. */
  retry_start: {
    readonly attempt: number;
    readonly maxAttempts: number;
    readonly delayMs: number;
    readonly kind: ErrorKind;
    readonly message: string;
  };
  /** A repeated call ended. */
  retry_end: { readonly attempt: number; readonly success: boolean };
  /** Memory was read. The event contains the numbers of episodes and facts found. */
  memory_recall: { readonly episodes: number; readonly facts: number };
  /** Memory was written. A write to a memory file carries the name of the file and the difference as a patch. */
  memory_write: {
    readonly kind: "block" | "episode" | "fact" | "file";
    readonly file?: string;
    readonly diff?: string;
  };
  /** A hook threw an error. The run continues (S4). */
  hook_error: { readonly hook: string; readonly failure: Failure };
  /** An extension threw an error. The run continues (S4). */
  extension_error: { readonly extension: string; readonly event: string; readonly failure: Failure };
  /** An extension shows a message to a person. */
  extension_notice: {
    readonly extension: string;
    readonly message: string;
    readonly level: "info" | "warning" | "error";
  };
}
