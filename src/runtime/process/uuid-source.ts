import { randomUUID } from "node:crypto";
import type { IdSource } from "../../kernel/index.ts";

export const uuidSource: IdSource = { next: () => randomUUID() };
