export { sqliteStore, type SqliteStoreOptions } from "../runtime/stores/sqlite/store.ts";
export type {} from "./kernel.ts";
