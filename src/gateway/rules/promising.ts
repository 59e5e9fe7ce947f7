import type { GenerateCall } from '#core/call';
import { where, type Generate } from '#core/generate';
import { withoutPassthrough } from '#core/passthrough';
import { isConversation, type RoutedCall } from '#core/routed-call';
import { unpromised } from '#core/unpromised';

/**
 * Marks the answers of models that are known not to keep to JSON schemas, where the call has one. They are decoded, so that they can be validated: see
 * `conforming`.
 */
export function promising(inner: Generate<RoutedCall>): Generate<RoutedCall> {
  return where(schemaNotKept, (call, _, context) => unpromised(inner(withoutPassthrough(call), context)), inner);
}

/** The call, where it has a schema to which its model is known not to keep. */
function schemaNotKept(call: RoutedCall): (GenerateCall & RoutedCall) | undefined {
  if (!isConversation(call) || call.output.type !== 'schema') return undefined;
  const { abilities } = call.route;
  return !abilities || abilities.includes('json-schema') ? undefined : call;
}
