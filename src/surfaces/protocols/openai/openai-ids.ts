/**
 * The ids that clients of OpenAI receive. Each is made of the id of its run, so that a run is found by an id that this server
 * has issued. A view of a tenant and user finds only their own runs.
 */

/** Where an answer begins: at the start of a run, or after calls that the client has answered. */
export interface ResponsePlace {
  readonly runId: string;
  /** Seq of the first event that can belong to the answer. */
  readonly fromSeq: number;
}

const start = "run_".length;

export function responseIdOf({ runId, fromSeq }: ResponsePlace): string {
  return `resp_${runId.slice(start)}${fromSeq === 0 ? "" : `.${fromSeq}`}`;
}

/** `undefined` for a text that is no id of a response. */
export function readResponseId(id: string): ResponsePlace | undefined {
  const [, name, fromSeq = "0"] = /^resp_([A-Za-z0-9_-]{1,64})(?:\.([1-9]\d{0,8}))?$/u.exec(id) ?? [];
  return name === undefined ? undefined : { runId: `run_${name}`, fromSeq: Number(fromSeq) };
}

/** A call that a client executes: the question of a run with this number, from 0. */
export interface ClientCall {
  readonly runId: string;
  readonly index: number;
}

export function callIdOf({ runId, index }: ClientCall): string {
  return `call_${runId.slice(start)}_${index}`;
}

/** `undefined` for a text that is no id of a call. */
export function readCallId(id: string): ClientCall | undefined {
  const [, name, index] = /^call_([A-Za-z0-9_-]{1,64})_(\d{1,6})$/u.exec(id) ?? [];
  return name === undefined ? undefined : { runId: `run_${name}`, index: Number(index) };
}

/** The id of an item of an answer. `key` is unique in the store and begins with the id of the run. */
export function itemIdOf(kind: "msg" | "rs" | "fc", key: string): string {
  return `${kind}_${key.slice(start).replaceAll(/[^A-Za-z0-9_-]/gu, "_")}`;
}

/** The id of an item of a further attempt of a model call, which only a live stream has. */
export function attemptOf(itemId: string, number: number): string {
  return `${itemId}.${number}`;
}

/** The id that an item has in the log, whichever attempt it is of. */
export function loggedItem(itemId: string): string {
  return itemId.replace(/\.\d+$/u, "");
}

/** The run of an item of an answer. `undefined` for a text that is no id of an item. */
export function runOfItem(id: string): string | undefined {
  const [, name] = /^(?:msg|rs|fc)_([A-Za-z0-9_-]{1,64})_[a-z0-9]+$/u.exec(loggedItem(id)) ?? [];
  return name === undefined ? undefined : `run_${name}`;
}
