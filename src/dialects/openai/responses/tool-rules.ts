import type { ToolRules } from '../../shared/tool-fit.ts';
import { functionNames, fittedFunction, longestDescription } from '../tool-schemas.ts';
import type { Quirks } from './quirks.ts';
import { dialect } from './wire.ts';

const rules: ToolRules = { dialect, names: functionNames, custom: true, namespaces: true, longestDescription, fitted: fittedFunction };
const functionsOnly: ToolRules = { ...rules, custom: false, namespaces: false };

export const toolRules = (quirks: Quirks | undefined): ToolRules => (quirks?.functionsOnly ? functionsOnly : rules);
