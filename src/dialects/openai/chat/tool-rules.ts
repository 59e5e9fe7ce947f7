import { isTranslated, type GenerateCall } from '#core/call';
import type { Fitted } from '../../shared/fitting.ts';
import { fittedTools, type ToolRules } from '../../shared/tool-fit.ts';
import { functionNames, fittedFunction, longestDescription } from '../tool-schemas.ts';
import type { Quirks } from './quirks.ts';
import { dialect } from './wire.ts';

const rules: ToolRules = { dialect, names: functionNames, custom: true, namespaces: false, longestDescription, fitted: fittedFunction };
const functionsOnly: ToolRules = { ...rules, custom: false };

/** Where nothing is known of a model, clients of this wire have tools of free text sent as they are: they may know it. */
export function fit(call: GenerateCall, quirks: Quirks | undefined): Fitted | undefined {
  const translated = isTranslated(call, dialect);
  const acceptsCustom = !(quirks?.functionsOnly ?? translated);
  return acceptsCustom && !translated ? undefined : fittedTools(call, acceptsCustom ? rules : functionsOnly);
}
