export * from "../runtime/stores/postgres/index.ts";
