import type { Event } from "./event.ts";
import type { Hash } from "./hash.ts";
import { canonicalJson } from "./json.ts";

/** What stands in for an event in the chain, so that retention may erase its content and the chain still holds (E1). */
export function contentHash(event: Event, hash: Hash): string {
  return hash(canonicalJson(event));
}

/** The head of a log after one more event; the head of an empty one is "". */
export function chainHead(previous: string, content: string, hash: Hash): string {
  return hash(`${previous}\n${content}`);
}
