import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

/** The page is built into the package's `dist`, from which `reeve serve` serves it. */
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  build: {
    outDir: fileURLToPath(new URL("../dist/page", import.meta.url)),
    emptyOutDir: true,
    target: "es2023",
    // A file that is inlined as a data URL would need a wider Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
});
