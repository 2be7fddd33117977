import type { JsonObject, JsonValue } from "../../../kernel/index.ts";
import type { RouteRequest } from "../../http/route.ts";
import { loggedItem, runOfItem } from "./openai-ids.ts";
import { invalidParameter } from "./openai-parameters.ts";
import { responsesOf } from "./response-run.ts";

/**
 * Replaces references to items of earlier answers by the items, as the logs of their runs have them. Clients that rely on the
 * store of the server send references in place of what it has answered.
 */
export async function withReferences(
  { runtime }: Pick<RouteRequest, "runtime">,
  input: JsonValue,
): Promise<JsonValue> {
  if (typeof input === "string") return input;
  const runs = new Map<string, ReadonlyMap<string, JsonObject>>();
  const items: JsonObject[] = [];
  for (const [index, item] of (input as readonly JsonObject[]).entries()) {
    const { type, id } = item;
    if (type !== "item_reference") {
      items.push(item);
      continue;
    }
    const named = typeof id === "string" ? loggedItem(id) : "";
    const runId = runOfItem(named);
    const known = runId === undefined ? undefined : (runs.get(runId) ?? (await itemsOf(runtime, runId)));
    if (runId !== undefined && known !== undefined) runs.set(runId, known);
    const found = known?.get(named);
    if (found === undefined)
      throw invalidParameter(
        `input[${index}].id`,
        `invalid input[${index}].id: no answer of yours has the item ${JSON.stringify(named.slice(0, 200))}; send the item itself`,
      );
    items.push(found);
  }
  return items;
}

/** The items of all answers of a run, by their ids. */
async function itemsOf(
  runtime: RouteRequest["runtime"],
  runId: string,
): Promise<ReadonlyMap<string, JsonObject>> {
  const run = await runtime.find(runId);
  const responses = run === undefined ? [] : await responsesOf(run);
  const items = responses.flatMap(({ output }) => output);
  return new Map(items.flatMap((item) => (typeof item["id"] === "string" ? [[item["id"], item]] : [])));
}
