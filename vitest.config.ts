import { defineConfig } from "vitest/config";
import { ClosingLine } from "./test/reporter/closing-line.ts";

const apart = ["contract", "crash", "gates", "package"];

export default defineConfig({
  test: {
    reporters: ["default", new ClosingLine()],
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: apart.map((folder) => `test/${folder}/**`),
          pool: "forks",
          execArgv: ["--expose-gc"],
        },
      },
      ...apart.map((name) => ({
        test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout: 60_000 },
      })),
    ],
  },
});
