export * from "../capabilities/desktop/index.ts";
