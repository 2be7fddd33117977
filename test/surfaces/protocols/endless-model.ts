import type { ModelRequest } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel, type ScriptedReply } from "../../../src/testing/index.ts";

/** A model that answers every request by a function, for agents that several tests share. */
export function endlessModel(answer: (request: ModelRequest) => string | ScriptedReply): ScriptedModel {
  return scriptedModel(Array.from({ length: 2_000 }, () => answer));
}
