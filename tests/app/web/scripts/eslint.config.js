import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    files: ["app/web/assets/*.js", "app/web/report/assets/*.js", "app/web/start/assets/*.js"],
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: globals.browser },
    rules: { eqeqeq: "error", "no-var": "error", "prefer-const": "error", "no-shadow": "error", "no-use-before-define": ["error", { functions: false, variables: false }] },
  },
];
