export * from "../testing/contracts/index.ts";
