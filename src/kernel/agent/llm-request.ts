import type { ModelRequest } from "../messages/model.ts";
import type { Transcript } from "../messages/transcript.ts";
import type { EphemeralSource } from "./prompt-source.ts";

/**
 * The request of `ctx.llm`. J4: the step's digest covers `transcript` and `role`. All other fields are sent to the
 * model but are not part of the digest, so that they may differ on a replay.
 */
export interface LlmRequest extends Omit<ModelRequest, "messages"> {
  /** The conversation, without the system prompt. */
  readonly transcript: Transcript;
  /** The system prompt. */
  readonly instructions?: string;
  /**
   * Sources of live state for this call only, which follows the transcript in the request. They are read when the
   * model is called, never on a replay, and are not stored.
   */
  readonly ephemeral?: readonly EphemeralSource[];
  /** The role whose model is called. Default: `main`. */
  readonly role?: string;
}
