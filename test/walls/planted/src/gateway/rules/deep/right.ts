import '../planted.ts';
import '../../planted.ts';
import '../../../core/planted.ts';
import '#gateway/planted';
