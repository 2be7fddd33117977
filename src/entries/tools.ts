export * from "../capabilities/tools/index.ts";
