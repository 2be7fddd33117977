import { createHmac } from "node:crypto";
import { canonicalJson, chainHead, type Event, type Hash } from "../../../kernel/index.ts";

/** E1: how events are chained. With a key nobody without it can make a chain that fits; without one, anybody can. */
export class Chain {
  readonly keyed: boolean;
  readonly #hash: Hash;

  constructor(hash: Hash, auditKey: string | undefined) {
    this.keyed = auditKey !== undefined;
    this.#hash =
      auditKey === undefined
        ? hash
        : (content) => createHmac("sha256", auditKey).update(content).digest("base64url");
  }

  /** As `contentHash` has it. */
  contents(events: readonly Event[]): string[] {
    return events.map((event) => this.#hash(eventText(event)));
  }

  head(before: string, contents: readonly string[]): string {
    return contents.reduce((head, content) => chainHead(head, content, this.#hash), before);
  }
}

/** What `canonicalJson` makes of an event, in a third of the time: the members of all events are known, and so is their order. */
export function eventText({ agentId, at, data, parentId, runId, seq, taskId, type }: Event): string {
  return `{"agentId":${JSON.stringify(agentId)},"at":${at},"data":${canonicalJson(data)},"parentId":${JSON.stringify(parentId)},"runId":${JSON.stringify(runId)},"seq":${seq},"taskId":${JSON.stringify(taskId)},"type":"${type}"}`;
}
