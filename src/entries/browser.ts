export * from "../capabilities/browser/index.ts";
