import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Store } from "../../kernel/index.ts";
import { openStore } from "../../runtime/index.ts";

/** Opens a store and creates it, with its folder, if it does not exist. */
export async function openOwnStore(address: string): Promise<Store> {
  const path = address.startsWith("sqlite:") ? address.slice("sqlite:".length) : "";
  if (path !== "" && path !== ":memory:") mkdirSync(dirname(resolve(path)), { recursive: true });
  return openStore(address);
}
