export * from "../runtime/stores/sqlite/store.ts";
